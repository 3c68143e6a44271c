-- compatible: a table that earlier versions neither read nor write.
-- The program of relays of each of the last builds, under the name that the user data of its workers has. An api serves all of them, so
-- instances that a worker of another version creates find theirs. A program has about 90 kB.
create table if not exists relay_programs (
  file_name    text primary key,
  code         bytea not null constraint relay_programs_code_size check (octet_length(code) between 1 and 4194304),
  last_used_at timestamptz not null default now()
);
