"""The commit as a TLA+ model: `Commit.tla`, checked by TLC as it is and with each guard taken out (`docs/model.md`)."""
