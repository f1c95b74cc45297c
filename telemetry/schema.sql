-- Version 1. The tables of measurements follow the metric declarations and are made by store.py.
CREATE TABLE host (
    host_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
CREATE TABLE series (
    series_id INTEGER PRIMARY KEY,
    host_id INTEGER NOT NULL REFERENCES host,
    key TEXT NOT NULL,                      -- JSON array: measurement, tag values
    UNIQUE (host_id, key)
);
CREATE TABLE window (
    window_id INTEGER PRIMARY KEY AUTOINCREMENT,   -- the order in which windows were committed
    host_id INTEGER NOT NULL REFERENCES host,
    tier INTEGER NOT NULL,
    start INTEGER NOT NULL,
    seconds INTEGER NOT NULL,
    UNIQUE (host_id, tier, start)
);
CREATE TABLE texts (
    texts_id INTEGER PRIMARY KEY,
    content TEXT NOT NULL UNIQUE            -- JSON object
);
CREATE TABLE event (
    event_id INTEGER PRIMARY KEY AUTOINCREMENT,
    host_id INTEGER NOT NULL REFERENCES host,
    sequence INTEGER NOT NULL,
    time REAL NOT NULL,
    kind TEXT NOT NULL,
    severity TEXT NOT NULL,
    text TEXT NOT NULL,
    gpu_uuid TEXT,
    rule TEXT,
    raised INTEGER,
    attributes TEXT NOT NULL DEFAULT '{}',
    UNIQUE (host_id, sequence)
);
CREATE TABLE inventory (
    inventory_id INTEGER PRIMARY KEY AUTOINCREMENT,
    host_id INTEGER NOT NULL REFERENCES host,
    time REAL NOT NULL,
    document TEXT NOT NULL
);
CREATE TABLE cursor (
    name TEXT PRIMARY KEY,
    position INTEGER NOT NULL
);
