"""Plain data that everything else speaks of: toggles and the values they take, names, presets."""
