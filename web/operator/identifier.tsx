/** Ids of accounts, sessions, instances and events: monospaced, selected as a whole, and linked to their pages. */

/** In full, to be copied. */
export const Identifier = ({ value }: { readonly value: string }) => <code class="identifier whole">{value}</code>

interface IdentifierLinkProps {
  readonly href: string
  readonly value: string
}

/** Cut off by the style where there is no room, so that a copy is always complete. */
export const IdentifierLink = ({ href, value }: IdentifierLinkProps) => (
  <a class="identifier" href={href} title={value}>
    {value}
  </a>
)

export const UserLink = ({ id }: { readonly id: string | null }) =>
  id === null ? <span class="muted">none</span> : <IdentifierLink href={`/operator/users/${id}`} value={id} />

export const SessionLink = ({ id }: { readonly id: string | null }) =>
  id === null ? <span class="muted">none</span> : <IdentifierLink href={`/operator/sessions/${id}`} value={id} />

export const EventLink = ({ id }: { readonly id: string }) => (
  <IdentifierLink href={`/operator/billing/events/${id}`} value={id} />
)

export const InstanceLink = ({ id }: { readonly id: string | null }) =>
  id === null ? (
    <span class="muted">none</span>
  ) : (
    <IdentifierLink href={`/operator/instances?show=all&instance_id=${encodeURIComponent(id)}`} value={id} />
  )
