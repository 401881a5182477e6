"""The labelling page: people read records, a ranker learns which to show next.

- `importing`, `exporting`: records from files, and decisions to files;
- `project`: the project file, an SQLite database;
- `decisions`: events folded into labels;
- `assignments`: which record goes to whom, and in which order records were assigned;
- `features`, `worker`, `trainer`: the ranker, in a process of its own;
- `service`: all of these behind one thread, which alone writes;
- `views`, `downloads`: what a person may see, as JSON and as files;
- `panel`: recall reached so far, and what is left to read;
- `server`, `security`, `static`: the page;
- `launch`: from a file to an open page; `notebook`: the same from a table.
"""
