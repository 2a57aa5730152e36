"""The brain without a language model. `LocalBrain` is its only public name."""

from agents.local.brain import LocalBrain as LocalBrain
