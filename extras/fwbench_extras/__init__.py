"""Parts of fwbench's repository that its users rarely call: engines, cheats, studies, pages."""
