"""Other devices than before: what is lost, what moves, and the plan for what is left.

``recover`` answers what a failure means; ``elastic`` weighs new plans against what they move.
"""
