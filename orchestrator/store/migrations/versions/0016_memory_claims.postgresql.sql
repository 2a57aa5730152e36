ALTER TABLE memory_work ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;

ALTER TABLE memory_work ALTER COLUMN dropped DROP DEFAULT;

ALTER TABLE memory_work ADD COLUMN claimed_by TEXT;

ALTER TABLE memory_work ADD COLUMN claimed_until TIMESTAMP WITH TIME ZONE;

ALTER TABLE memory_work ADD CONSTRAINT ck_memory_work_dropped CHECK (dropped >= 0);

ALTER TABLE memory_work ADD CONSTRAINT ck_memory_work_claim CHECK ((claimed_by IS NULL) = (claimed_until IS NULL));
