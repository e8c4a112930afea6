PRAGMA page_size=4096;
PRAGMA auto_vacuum=incremental;
PRAGMA journal_mode=wal;
CREATE TABLE keys (
	version INTEGER PRIMARY KEY AUTOINCREMENT,
	key     TEXT NOT NULL UNIQUE,
	value   BLOB NOT NULL,
	expires INTEGER NOT NULL -- Unix milliseconds; 0: never
) STRICT;
CREATE INDEX keys_expires ON keys (expires) WHERE expires > 0;
CREATE TABLE records (
	cursor INTEGER PRIMARY KEY AUTOINCREMENT,
	log    TEXT NOT NULL,
	time   INTEGER NOT NULL, -- Unix milliseconds
	data   BLOB NOT NULL
) STRICT;
CREATE INDEX records_log ON records (log, cursor);
INSERT INTO keys VALUES (1, 'tool/hello', CAST('{"apiVersion":"promptkit.altairalabs.ai/v1","kind":"Tool","metadata":{"name":"hello"},"spec":{"description":"Says hello","mode":"mock","mock_result":"hi"}}' AS BLOB), 0);
INSERT INTO keys VALUES (2, 'tools/state', x'', 0);
PRAGMA application_id=1953264237;
PRAGMA user_version=1;
