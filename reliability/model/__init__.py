"""The commit as a TLA+ model: `Commit.tla`, which TLC checks complete and without each guard (`docs/model.md`)."""
