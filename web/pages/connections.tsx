/** The list of connections, with what their players see while no stream arrives. */
import { expectSuccess } from '../../client/api-error.ts'
import type { Connection } from '../api-replies.ts'
import { Icon } from '../icons.tsx'
import type { PageHandler } from '../page.ts'
import { isPlainSegment } from '../plain-path.ts'
import { TimeAgo } from '../time-text.tsx'
import { describeOnLoss } from './loss-texts.ts'

export const list: PageHandler = async (visit) => {
  const { connections } = expectSuccess(await visit.api.GET('/api/v1/relay/connections'), 'The list of connections')
  return {
    name: 'connections',
    title: 'Connections',
    section: 'relays',
    page: (
      <>
        <div class="page-head">
          <h1>Connections</h1>
          <p class="lead">
            A connection is the name that you start a relay for. Choose here what its players see when your stream
            drops.
          </p>
        </div>
        {connections.length === 0 ? (
          <NoConnections />
        ) : (
          <section class="card" aria-label="Your connections">
            <ul class="entries">
              {connections.map((connection) => (
                <Entry key={connection.name} connection={connection} />
              ))}
            </ul>
          </section>
        )}
      </>
    ),
  }
}

const NoConnections = () => (
  <section class="card empty" aria-labelledby="no-connections">
    <Icon name="plug" />
    <h2 id="no-connections">No connections yet</h2>
    <p>
      The first start of a relay makes its connection. <a href="/relays">Start a relay</a>
    </p>
  </section>
)

const Entry = ({ connection }: { readonly connection: Connection }) => (
  <li class="row apart" data-connection={connection.name}>
    <div>
      <p class="row">
        <strong>{connection.name}</strong>
        {connection.session_id === null ? null : <span class="badge good">Relay running</span>}
      </p>
      <p class="muted">
        When the stream drops, players {describeOnLoss(connection)}. Last used <TimeAgo at={connection.last_used_at} />.
      </p>
    </div>
    {/* A name that cannot be a segment of a path, such as two dots, has no page. */}
    {isPlainSegment(connection.name) ? (
      <a class="button second" href={`/connections/${connection.name}`}>
        Change
        <span class="unseen"> what players of {connection.name} see</span>
      </a>
    ) : null}
  </li>
)
