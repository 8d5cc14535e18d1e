-- What a case holds. This file is the truth: it is embedded into redhand at
-- build time and run on a new case.db. The version is CASE_SCHEMA in case.c
-- (PRAGMA user_version); a change here comes with a step in migrations[] there.

-- Trials of one command under one setting. Running the same command again
-- finds its series by `settings` and goes on with it.
CREATE TABLE series (
	id         INTEGER PRIMARY KEY,
	command    TEXT NOT NULL,            -- repro, compare, …
	settings   TEXT NOT NULL,            -- canonical text of all that shapes a trial
	program    TEXT NOT NULL,            -- what the program's file was: size and hash
	seed       INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	learnt     INTEGER NOT NULL DEFAULT 0, -- full runs whose breadcrumb order is in crumb_next
	UNIQUE (settings, program)
);

-- One way to fail (the id is a hash of the other columns but summary).
CREATE TABLE signature (
	id          TEXT PRIMARY KEY,
	kind        TEXT NOT NULL,           -- signal, timeout, output, test, exit
	signal      INTEGER NOT NULL,
	exit_status INTEGER NOT NULL,
	stray       INTEGER NOT NULL,        -- a process of the tree, not the command itself
	test        TEXT,
	crumb       TEXT,
	fault       TEXT,                    -- class of the fault, when an observer saw it
	site        TEXT,                    -- function where it died, likewise
	summary     TEXT NOT NULL
) WITHOUT ROWID;

-- The set of signatures that one trial showed; the empty set is a pass.
CREATE TABLE outcome (
	id         INTEGER PRIMARY KEY,
	signatures TEXT NOT NULL UNIQUE      -- ids in ascending order, separated by a space
);

CREATE TABLE crumb (
	id   INTEGER PRIMARY KEY,
	text TEXT NOT NULL UNIQUE
);

-- A row appears when a trial has ended, all of it in one transaction, so a
-- trial is either wholly here or was never run.
CREATE TABLE trial (
	number       INTEGER PRIMARY KEY,    -- trials/NUMBER
	series       INTEGER NOT NULL REFERENCES series(id),
	position     INTEGER NOT NULL,       -- which run of the series it is, from 1
	arm          INTEGER NOT NULL,       -- 0 outside of compare
	slot         INTEGER NOT NULL,
	outcome      INTEGER NOT NULL REFERENCES outcome(id),
	cut_short    INTEGER NOT NULL,       -- ended by a signal or the timeout
	exit_status  INTEGER NOT NULL,       -- -1 when a signal ended it
	signal       INTEGER NOT NULL,
	timed_out    INTEGER NOT NULL,
	stray_signal INTEGER NOT NULL,
	leftovers    INTEGER NOT NULL,
	started_ms   INTEGER NOT NULL,
	wall_ns      INTEGER NOT NULL,
	user_ns      INTEGER NOT NULL,
	system_ns    INTEGER NOT NULL,
	peak_kib     INTEGER NOT NULL,
	stdout_bytes INTEGER NOT NULL,
	stderr_bytes INTEGER NOT NULL,
	crumb        INTEGER REFERENCES crumb(id), -- failing trials only: the last one
	kept         INTEGER NOT NULL,       -- the directory is still there
	UNIQUE (series, position)
);

-- What a trial was disturbed with on purpose (--chaos); no row: nothing.
CREATE TABLE chaos (
	trial      INTEGER PRIMARY KEY REFERENCES trial(number),
	seed       INTEGER NOT NULL,
	knobs      TEXT NOT NULL,            -- in force: pad,gap,pin,starve,arm
	pad_bytes  INTEGER NOT NULL,
	gap_bytes  INTEGER NOT NULL,
	heap_bytes INTEGER NOT NULL,
	core       INTEGER NOT NULL,         -- -1: all
	hold_weight INTEGER NOT NULL,
	arm_us     INTEGER NOT NULL
);

-- Machines that workers ran on (--runner), as they told it themselves.
CREATE TABLE machine (
	id        INTEGER PRIMARY KEY,
	node      TEXT NOT NULL,           -- its name
	cores     TEXT NOT NULL,           -- that the worker might use
	cpu       TEXT NOT NULL,
	microcode TEXT NOT NULL,
	kernel    TEXT NOT NULL,
	gpu       TEXT NOT NULL,           -- that the worker might see
	UNIQUE (node, cores, cpu, microcode, kernel, gpu)
);

-- Where a trial ran; no row: on redhand's own machine.
CREATE TABLE trial_machine (
	trial INTEGER PRIMARY KEY REFERENCES trial(number),
	machine INTEGER NOT NULL REFERENCES machine(id)
);

-- How breadcrumbs follow each other in runs that reached their own end.
CREATE TABLE crumb_next (
	series INTEGER NOT NULL REFERENCES series(id),
	crumb  INTEGER NOT NULL REFERENCES crumb(id),
	next   INTEGER NOT NULL REFERENCES crumb(id),
	runs   INTEGER NOT NULL,
	PRIMARY KEY (series, crumb, next)
) WITHOUT ROWID;

-- Files that processes made shorter, as an observer saw it. Another trial may crash because of it.
CREATE TABLE file_cut (
	id          INTEGER PRIMARY KEY,
	trial       INTEGER NOT NULL,        -- whose process did it; the trial itself may have passed
	path        TEXT NOT NULL,
	device      INTEGER NOT NULL,
	inode       INTEGER NOT NULL,
	realtime_ns INTEGER NOT NULL,
	pid         INTEGER NOT NULL,
	program     TEXT NOT NULL,
	how         TEXT NOT NULL,
	old_size    INTEGER NOT NULL,
	new_size    INTEGER NOT NULL,
	stack       TEXT NOT NULL            -- a frame a line: function, file, line, module, offset
);
CREATE INDEX file_cut_by_file ON file_cut (device, inode, realtime_ns);

-- What a series of `minimize` chooses from: tests, or lines, arguments, variables.
CREATE TABLE item (
	series INTEGER NOT NULL REFERENCES series(id),
	number INTEGER NOT NULL,             -- from 0, in the order of the full list
	name   TEXT NOT NULL,
	PRIMARY KEY (series, number)
) WITHOUT ROWID;

-- A list that was run: numbers of items in order, as ranges ("0-5,7,9-12").
CREATE TABLE list (
	id     INTEGER PRIMARY KEY,
	series INTEGER NOT NULL REFERENCES series(id),
	items  TEXT NOT NULL,
	UNIQUE (series, items)
);

-- Which list a trial ran, stored with the trial. `seq` is the order in which the trials
-- ended: told again in that order they lead to the same belief.
CREATE TABLE list_run (
	seq      INTEGER PRIMARY KEY,
	trial    INTEGER NOT NULL UNIQUE REFERENCES trial(number),
	list     INTEGER NOT NULL REFERENCES list(id),
	purpose  INTEGER NOT NULL,           -- enum minimiser_purpose
	started  INTEGER NOT NULL,           -- how many of its items started, 0 when not told
	complete INTEGER NOT NULL,           -- all of them came to their end
	told     INTEGER NOT NULL            -- 0: the run says nothing (set-up failed, other tests ran)
);

-- What was seen, piece by piece. `detail` is all of it, as model/evidence.h packs it; the other
-- columns are for people who look in here.
CREATE TABLE evidence (
	id         INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: verdicts name it
	trial      INTEGER NOT NULL,         -- 0: not of one trial
	failing    INTEGER NOT NULL,         -- that trial failed in the way that is being chased
	kind       TEXT NOT NULL,
	text       TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	detail     BLOB NOT NULL
);

-- What followed from the evidence; the last one counts.
CREATE TABLE verdict (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	class      TEXT NOT NULL,
	firm       INTEGER NOT NULL,
	sentence   TEXT NOT NULL,
	caught     INTEGER NOT NULL,
	watched    INTEGER NOT NULL,
	trials     INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	detail     BLOB NOT NULL
);

-- What a hunt decided to do next, and why, with its figures.
CREATE TABLE decision (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	time_ms INTEGER NOT NULL,
	stage   TEXT NOT NULL,
	text    TEXT NOT NULL,               -- for whoever reads the database: id and values
	said    BLOB                         -- the same, packed; NULL: of an older redhand
);
-- Which experiment a hunt chose: why, what it was expected to take, what it took and brought.
CREATE TABLE choice (
	id                INTEGER PRIMARY KEY AUTOINCREMENT,
	time_ms           INTEGER NOT NULL,
	question          TEXT NOT NULL,
	experiment        TEXT NOT NULL,
	why               TEXT NOT NULL,
	expected_trials   REAL NOT NULL,
	expected_failures REAL NOT NULL,
	expected_s        REAL NOT NULL,
	trials            INTEGER,           -- NULL until it has ended, as all that follow
	failures          INTEGER,
	seconds           REAL,
	brought           TEXT,
	why_said          BLOB,              -- as in decision
	brought_said      BLOB
);

-- What a search of `minimize` found, as it was told last. Without it the trials would have to be
-- told again to the search, and the program asked for its tests.
CREATE TABLE minimal (
	series      INTEGER PRIMARY KEY REFERENCES series(id),
	verdict     INTEGER NOT NULL,        -- enum minimal_verdict
	items       TEXT NOT NULL,           -- numbers of items in order, as in list
	victim      TEXT,
	signature   TEXT,                    -- the failure that was chased
	failed      INTEGER NOT NULL,        -- of `trials` with exactly this list
	trials      INTEGER NOT NULL,
	full_failed INTEGER NOT NULL,        -- of `full_trials` with the full list
	full_trials INTEGER NOT NULL,
	confidence  REAL NOT NULL,
	argv        TEXT NOT NULL,           -- the plain command: words, quoted as for a shell
	env         TEXT NOT NULL            -- what it needs besides the user's own, likewise
);

-- What people write down. Times are milliseconds since the epoch.
CREATE TABLE note (
	id      INTEGER PRIMARY KEY,
	made_ms INTEGER NOT NULL,
	text    TEXT NOT NULL
);

-- The user's own hypotheses; those that redhand brings along are no rows.
CREATE TABLE hypothesis (
	id      INTEGER PRIMARY KEY,
	made_ms INTEGER NOT NULL,
	text    TEXT NOT NULL
);

-- Each change of status; the last one holds. Nothing is ever taken back out.
CREATE TABLE hypothesis_change (
	seq        INTEGER PRIMARY KEY,
	hypothesis INTEGER NOT NULL REFERENCES hypothesis(id),
	made_ms    INTEGER NOT NULL,
	status     TEXT NOT NULL,            -- open, falsified, confirmed
	because    TEXT,
	trial      INTEGER,                  -- the observation: a trial …
	evidence   INTEGER                   -- … or a piece of evidence
);

-- What hides the bug for the time being: a skipped test, an entry in a skip list.
CREATE TABLE workaround (
	id         INTEGER PRIMARY KEY,
	made_ms    INTEGER NOT NULL,
	text       TEXT NOT NULL,
	removed_ms INTEGER                   -- NULL: still in place
);

-- Each time the case was set aside, and what the world looked like then.
CREATE TABLE parking (
	id         INTEGER PRIMARY KEY,
	made_ms    INTEGER NOT NULL,
	because    TEXT NOT NULL,
	until      TEXT NOT NULL,            -- what has to happen first
	commit_id  TEXT,                     -- git; "-dirty" when files differed from it
	program    TEXT,                     -- build-id, or size and hash of its file
	kernel     TEXT,
	machine    TEXT,
	redhand    TEXT,
	variables  TEXT NOT NULL,            -- a line per environment variable: name, short hash
	resumed_ms INTEGER,                  -- NULL: parked
	gate       TEXT                      -- what the resumption gate said then
);

-- Fixes that somebody tried. What the trials after one show is counted when it is asked for.
CREATE TABLE attempt (
	id          INTEGER PRIMARY KEY,
	made_ms     INTEGER NOT NULL,
	text        TEXT NOT NULL,
	commit_id   TEXT,                    -- as in parking
	branch      TEXT,
	program     TEXT,
	diff        TEXT,                    -- of the checkout against its commit
	after_trial INTEGER NOT NULL         -- the last trial at that time
);

-- What somebody means to do next.
CREATE TABLE step (
	id      INTEGER PRIMARY KEY,
	made_ms INTEGER NOT NULL,
	text    TEXT NOT NULL,
	done_ms INTEGER                      -- NULL: still to do
);

-- Other cases that may have the same cause.
CREATE TABLE relation (
	id      INTEGER PRIMARY KEY,
	made_ms INTEGER NOT NULL,
	dir     TEXT NOT NULL UNIQUE,
	common  TEXT NOT NULL                -- a line for each thing that both verdicts name
);

-- What the world looked like when a command began to run trials; a row for each change.
CREATE TABLE surroundings (
	id        INTEGER PRIMARY KEY,
	seen_ms   INTEGER NOT NULL,
	commit_id TEXT,                      -- as in parking
	branch    TEXT,
	program   TEXT,
	kernel    TEXT,
	machine   TEXT,
	redhand   TEXT
);

-- Sentinels made from this case; the newest one guards it.
CREATE TABLE sentinel (
	id        INTEGER PRIMARY KEY,
	made_ms   INTEGER NOT NULL,
	dir       TEXT NOT NULL,             -- seen from the case directory
	series    INTEGER NOT NULL,          -- what it was made from
	signature TEXT NOT NULL,
	failed    INTEGER NOT NULL,
	trials    INTEGER NOT NULL
);

-- The commits that a series of `bisect` has built, or could not: numbers of its items.
CREATE TABLE build (
	series   INTEGER NOT NULL REFERENCES series(id),
	item     INTEGER NOT NULL,
	unusable TEXT NOT NULL,              -- why it cannot be tested; empty when it can
	wall_ns  INTEGER NOT NULL,
	PRIMARY KEY (series, item)
) WITHOUT ROWID;
