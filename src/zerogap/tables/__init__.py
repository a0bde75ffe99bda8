"""Files with data: delimited text, svmlight and Parquet, plain or compressed, as columns or as sparse points.

What a file is, its delimiter and whether it has a header are found out from the content unless they are given.  Every complaint
names the file, the row and the column.
"""

from zerogap.tables.delimited import CHUNK
from zerogap.tables.files import FORMATS, dense_or_sparse, read, widened
from zerogap.tables.table import Form, MissingValue, NoColumn, NotANumber, Points, Table, TableError, number_text

__all__ = [
    "CHUNK",
    "FORMATS",
    "Form",
    "MissingValue",
    "NoColumn",
    "NotANumber",
    "Points",
    "Table",
    "TableError",
    "dense_or_sparse",
    "number_text",
    "read",
    "widened",
]
