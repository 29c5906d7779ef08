PRAGMA journal_mode=WAL;
PRAGMA user_version=1;
BEGIN TRANSACTION;
CREATE TABLE actions (
    request_id TEXT PRIMARY KEY,
    alert_id INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    starts_at INTEGER NOT NULL,
    trainer_job TEXT NOT NULL,
    trainer_instance TEXT NOT NULL,
    labels TEXT NOT NULL,
    action TEXT NOT NULL,
    dry_run INTEGER NOT NULL,
    received_steady REAL NOT NULL,
    steady REAL NOT NULL,
    decided_at REAL NOT NULL,
    state TEXT NOT NULL,
    url TEXT NOT NULL,
    process_start REAL,
    attempts INTEGER NOT NULL,
    answered_at REAL,
    finished_at REAL,
    finished_steady REAL,
    result TEXT,
    detail TEXT NOT NULL,
    freed_bytes REAL,
    removed TEXT NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    duration_seconds REAL
);
INSERT INTO "actions" VALUES('aff321ca-9806-4fc3-ad72-fcb59e844060',1,'0000000000000001',1767225600123456,'trainer','127.0.0.1:40697','{"alertname": "TrainerMemoryHigh", "job": "trainer", "instance": "127.0.0.1:40697", "severity": "critical", "kind": "threshold", "resource": "memory", "component": "trainer", "action": "cleanup"}','regular',0,2.59200481170949200175e+06,2.5920051183189991861e+06,1.79561889643745708471e+09,'done','http://127.0.0.1:40697/metrics',1.79561889369329285627e+09,1,1.79561889661252379419e+09,1.7956188974360389709e+09,2.5920061169042652473e+06,'helped','the alert ended; memory 2000.0 MB to 500.0 MB (prometheus), memory 2000.0 MB to 500.0 MB (trainer)',1500000000.0,'{"bodies": 600.0, "food_sources": 50.0}','{"prometheus": {"bodies": 300.0, "memory": 2000000000.0}, "trainer": {"memory": 2000000000.0, "bodies": 900.0, "entities/food_sources": 70.0}}','{"trainer": {"memory": 500000000.0, "bodies": 300.0, "entities/food_sources": 20.0}, "prometheus": {"bodies": 300.0, "memory": 500000000.0}}',0.01);
CREATE TABLE alerts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    received_at REAL NOT NULL,
    steady REAL NOT NULL,
    fingerprint TEXT NOT NULL,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER,
    status TEXT NOT NULL,
    alertname TEXT NOT NULL,
    trainer_job TEXT NOT NULL,
    trainer_instance TEXT NOT NULL,
    urgent INTEGER NOT NULL,
    labels TEXT NOT NULL,
    summary TEXT NOT NULL,
    decided_at REAL,
    decision TEXT,
    reason TEXT,
    detail TEXT
);
INSERT INTO "alerts" VALUES(1,1.79561889613084244726e+09,2.59200481170949200175e+06,'0000000000000001',1767225600123456,NULL,'firing','TrainerMemoryHigh','trainer','127.0.0.1:40697',0,'{"alertname": "TrainerMemoryHigh", "job": "trainer", "instance": "127.0.0.1:40697", "severity": "critical", "kind": "threshold", "resource": "memory", "component": "trainer", "action": "cleanup"}','memory is over its limit',1.7956188964374895096e+09,'act','regular','first for this alert');
INSERT INTO "alerts" VALUES(2,1.79561889649715900421e+09,2.59200517802512925128e+06,'0000000000000002',1767225600123456,NULL,'firing','TrainerMemoryHigh','trainer','10.0.0.1:7777',0,'{"alertname": "TrainerMemoryHigh", "job": "trainer", "instance": "10.0.0.1:7777", "severity": "critical", "kind": "threshold", "resource": "memory", "component": "trainer", "action": "cleanup"}','memory is over its limit',1.7956188967862143517e+09,'suppress','not_firing','Prometheus says the alert does not fire (any more)');
CREATE TABLE clock (wall REAL NOT NULL, steady REAL NOT NULL, recovered REAL, watchdog_at REAL NOT NULL);
INSERT INTO "clock" VALUES(1795618897.44076,2.59200612162572098886e+06,NULL,1795618891.0);
CREATE INDEX alerts_episode ON alerts (fingerprint, starts_at);
CREATE INDEX alerts_waiting ON alerts (trainer_job, trainer_instance, urgent DESC, id) WHERE decision IS NULL;
CREATE INDEX actions_trainer ON actions (trainer_job, trainer_instance, steady);
CREATE INDEX actions_steady ON actions (steady);
CREATE INDEX actions_alert ON actions (alert_id);
CREATE INDEX actions_unfinished ON actions (trainer_job, trainer_instance) WHERE state <> 'done';
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('alerts',2);
COMMIT;
