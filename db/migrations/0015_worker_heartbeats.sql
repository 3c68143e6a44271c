do $$
begin
  if exists (
    select from information_schema.columns
    where table_schema = 'public' and table_name = 'workers' and column_name = 'beat_at'
  ) then
    alter table workers rename column beat_at to heartbeat_at;
  end if;
end
$$;
