-- advisor.db: what the advisor itself must remember. One file for every table; each is made where
-- it is not there, so that a newer version adds its own at the first start.

-- Alert rows as they arrived from the hosts' outboxes, in order for a host.
CREATE TABLE IF NOT EXISTS alert (
    alert_id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,                   -- the outbox
    host TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    time REAL NOT NULL,                     -- when it happened
    received REAL NOT NULL,                 -- when it arrived here
    rule TEXT NOT NULL,
    subject TEXT NOT NULL,
    raised INTEGER NOT NULL,
    severity TEXT NOT NULL,
    text TEXT NOT NULL,
    gpu_uuid TEXT,
    attributes TEXT NOT NULL,
    UNIQUE (source, host, sequence, time)
);
CREATE INDEX IF NOT EXISTS alert_course ON alert (host, rule, subject, alert_id);

-- How far each outbox was read, by host ('' where it counts all hosts together).
CREATE TABLE IF NOT EXISTS intake (
    source TEXT NOT NULL,
    host TEXT NOT NULL,
    position INTEGER NOT NULL,
    time REAL NOT NULL,
    PRIMARY KEY (source, host)
);

-- How far each channel has delivered, by host.
CREATE TABLE IF NOT EXISTS delivery (
    channel TEXT NOT NULL,
    host TEXT NOT NULL,
    alert_id INTEGER NOT NULL,
    PRIMARY KEY (channel, host)
);

-- Alerts that a channel was told are raised, and not yet that they are over.
CREATE TABLE IF NOT EXISTS told (
    channel TEXT NOT NULL,
    host TEXT NOT NULL,
    rule TEXT NOT NULL,
    subject TEXT NOT NULL,
    alert_id INTEGER NOT NULL,
    PRIMARY KEY (channel, host, rule, subject)
);

CREATE TABLE IF NOT EXISTS snooze (
    snooze_id INTEGER PRIMARY KEY,
    rule TEXT NOT NULL,                     -- patterns: * stands for anything
    host TEXT NOT NULL,
    until REAL NOT NULL,
    made REAL NOT NULL,
    made_by TEXT NOT NULL
);

-- When something was last done: 'report', 'digest:CHANNEL', 'report:CHANNEL'.
CREATE TABLE IF NOT EXISTS stamp (
    name TEXT PRIMARY KEY,
    time REAL NOT NULL
);

-- What each report said of a server, for the next one to tell what has become of it. The newest of
-- a day (of the end of the period told, since 1970) is kept.
CREATE TABLE IF NOT EXISTS past_report (
    host TEXT NOT NULL,
    day INTEGER NOT NULL,
    document TEXT NOT NULL,                 -- JSON: verdict, inventory, hours, advice
    PRIMARY KEY (host, day)
);

-- Days of a history that is read over a network: what it is of, how many points the server had.
CREATE TABLE IF NOT EXISTS digest (
    place TEXT NOT NULL,
    day INTEGER NOT NULL,                   -- its first second, UTC
    points INTEGER NOT NULL,
    made INTEGER NOT NULL,
    content BLOB NOT NULL,                  -- see digests.py
    PRIMARY KEY (place, day)
);

-- What people said of windows, and what telemetry showed of each GPU there: the classifier learns of
-- it, after the windows themselves were deleted too.
CREATE TABLE IF NOT EXISTS label (
    label_id INTEGER PRIMARY KEY,
    host TEXT NOT NULL,
    gpu_uuid TEXT NOT NULL,
    since INTEGER NOT NULL,                 -- [since, until), Unix seconds
    until INTEGER NOT NULL,
    phase TEXT NOT NULL,
    shown TEXT NOT NULL,                    -- JSON: the row of the training table
    made REAL NOT NULL,
    made_by TEXT NOT NULL
);
