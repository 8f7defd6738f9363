"""Published reports, and fwbench's runs set against them."""
