"""The demo input: hand-written documents and the script that makes files of them. Not part of the installed package."""
