/** The head of the account's pages, and the links between them. */

const tabs = [
  ['plan', '/account', 'Plan'],
  ['security', '/account/security', 'Security'],
  ['keys', '/account/keys', 'Keys'],
  ['apps', '/account/apps', 'Connected apps'],
  ['activity', '/account/activity', 'Activity'],
  ['notifications', '/account/notifications', 'Notifications'],
] as const

interface AccountTabsProps {
  readonly current: (typeof tabs)[number][0]
}

export const AccountTabs = ({ current }: AccountTabsProps) => (
  <nav class="tabs" aria-label="Account">
    {tabs.map(([name, path, label]) => (
      <a key={name} href={path} aria-current={name === current ? 'page' : undefined}>
        {label}
      </a>
    ))}
    {/* On phones only, where the main navigation has no room for it. */}
    <form class="phone-sign-out" method="post" action="/sign-out">
      <button class="quiet" type="submit">
        Sign out
      </button>
    </form>
  </nav>
)
