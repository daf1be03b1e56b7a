"""Plans of a whole network: chosen, explained, and written back into a dump.

``plan`` makes one; ``cost_report`` says where the time of a step goes, with or without a plan.
"""
