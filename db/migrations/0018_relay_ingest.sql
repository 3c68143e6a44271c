-- The stream that a relay receives: the summary of its last health report, the bitrate of the last ten minutes, and totals of the
-- session, which stay after its end. They are columns of relay_health because the batched write of the reports updates them.

alter table relay_health
  -- When the relay last stated whether it receives a stream; null before it did. The next six columns are from that report.
  add column if not exists ingest_at timestamptz,
  add column if not exists is_publishing boolean,
  add column if not exists bitrate_kbps integer,
  add column if not exists links smallint,
  add column if not exists players smallint,
  add column if not exists rtt_ms real,
  add column if not exists loss_pct real,
  add column if not exists engine text,
  -- Since when is_publishing has its present value.
  add column if not exists publishing_since timestamptz,
  -- The counter of the relay's process, which restarts at 0 with a new process.
  add column if not exists bytes_total bigint,
  add column if not exists bytes_received bigint not null default 0,
  add column if not exists peak_bitrate_kbps integer not null default 0,
  add column if not exists seconds_publishing double precision not null default 0,
  -- The highest bitrate of each of up to 60 slots of 10 seconds, the newest last; null for a slot without a report.
  add column if not exists recent_bitrate_kbps integer[],
  -- The newest slot: seconds since 1970, divided by 10.
  add column if not exists recent_slot integer;

alter table relay_health drop constraint if exists relay_health_engine_check;
alter table relay_health add constraint relay_health_engine_check check (engine in ('srt-live-transmit', 'sls', 'none'));

-- The history of a user: ended sessions, the newest first.
create index if not exists relay_sessions_ended on relay_sessions (user_id, stopped_at desc, id desc) where state = 'stopped';
create index if not exists usage_intervals_session on usage_intervals (session_id);
