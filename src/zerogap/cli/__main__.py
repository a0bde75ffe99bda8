"""``python -m zerogap.cli`` is the command, too."""

from zerogap.cli import main

raise SystemExit(main())
