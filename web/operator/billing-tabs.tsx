/** The parts of the billing section. */

const tabs = {
  events: ['/operator/billing', 'Events'],
  withdrawals: ['/operator/billing/withdrawals', 'Withdrawals'],
  without_plan: ['/operator/billing/accounts?billed=without_plan', 'Unused add-ons'],
  twice: ['/operator/billing/accounts?billed=twice', 'Billed twice'],
} as const

export type BillingTab = keyof typeof tabs

export const BillingTabs = ({ current }: { readonly current: BillingTab }) => (
  <nav class="tabs" aria-label="Billing">
    {Object.entries(tabs).map(([name, [path, label]]) => (
      <a key={name} href={path} aria-current={name === current ? 'page' : undefined}>
        {label}
      </a>
    ))}
  </nav>
)
