-- The normalised form of a billing event has one name in every layer: BillingEvent in the code, `event` here.
alter table billing_events rename column fact to event;
