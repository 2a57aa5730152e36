ALTER TABLE fact_changes DROP CONSTRAINT fk_fact_changes_target;

ALTER TABLE fact_changes ADD CONSTRAINT fk_fact_changes_target FOREIGN KEY(target) REFERENCES fact_changes (id);

ALTER TABLE fact_changes DROP CONSTRAINT ck_fact_changes_op;

ALTER TABLE fact_changes ADD CONSTRAINT ck_fact_changes_op CHECK (op IN ('add', 'replace', 'retract', 'unsure', 'forget', 'withdraw'));

CREATE INDEX ix_alicia_memory_type ON alicia_memory (user_id, source_type);
