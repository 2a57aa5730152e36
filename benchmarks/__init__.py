"""The project measured against bare libraries doing the same work in the same run."""
