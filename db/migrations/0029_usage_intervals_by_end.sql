-- The relay time of a cycle is read from the intervals that ended in it, without those of earlier cycles and without the table
-- itself. The index replaces usage_intervals_user, whose first column it shares.
create index if not exists usage_intervals_user_ended on usage_intervals (user_id, ended_at) include (started_at);
drop index if exists usage_intervals_user;
