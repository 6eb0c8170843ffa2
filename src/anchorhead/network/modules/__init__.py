"""The layers of a network as torch modules: what `network.module()` is, and what runs where nothing is direct."""
