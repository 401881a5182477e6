"""Reading rows and labels: files, columns, checks, data sets."""
