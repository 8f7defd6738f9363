"""Parts of fwbench's repository that its users rarely call: cheats, published studies, pages."""
