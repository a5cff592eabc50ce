"""``python -m deniable``, for who has no script of that name in the path."""

from deniable.cli import main

main()
