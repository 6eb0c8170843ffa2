"""Programs as files hold them: their steps and functions, their exact quantities, and their text."""
