"""Checkpoints under another layout: who needs whose slices, and what MindSpore asks for."""
