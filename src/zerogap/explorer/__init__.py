"""Pages to look at: every C of a path, and solvers step by step.  They read results, and compute nothing.

A page is ``template.html`` with a bundle of JavaScript, made from ``explorer/`` at the root of the repository, and the data as
JSON.  In a notebook the same bundle is a widget.
"""
