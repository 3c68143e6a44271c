-- compatible: a column that earlier versions neither read nor write.
-- Whether a process of a version without the migration may start beside it, from the first line of its file. Null means no: the
-- migrations that were applied before this one, and those that do not say.
alter table if exists schema_migrations add column if not exists compatible boolean;
