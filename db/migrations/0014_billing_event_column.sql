-- The normalised form of a billing event has one name in every layer: BillingEvent in the code, `event` here.
do $$
begin
  if exists (
    select from information_schema.columns
    where table_schema = 'public' and table_name = 'billing_events' and column_name = 'fact'
  ) then
    alter table billing_events rename column fact to event;
  end if;
end
$$;
