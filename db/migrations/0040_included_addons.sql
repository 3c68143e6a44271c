-- compatible: an older program neither reads nor writes the column, and its rows get the default.
-- Add-ons that a provider's subscription contains beside the plan. Reconciliation compares them with the provider's list.
alter table subscriptions add column if not exists addons integer not null default 0
  constraint subscriptions_addons_check check (addons >= 0 and addons <= 3);
