"""``python -m zerogap`` is the command line."""

from zerogap.cli import main

raise SystemExit(main())
