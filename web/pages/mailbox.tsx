/** The mailbox of a service for development, which shows the emails that it would send. */

import type { Reply } from '../../client/reply.ts'
import { isLoopback } from '../../platform/loopback.ts'
import { Icon } from '../icons.tsx'
import type { Document, PageHandler, Visit } from '../page.ts'
import { DateTime } from '../time-text.tsx'
import { problemPage } from './problem.tsx'

type Mail = Reply<'get', '/mailbox'>['mails'][number]

export const list: PageHandler = (visit) =>
  withMails(visit, (mails) => ({
    name: 'mailbox',
    title: 'Mailbox',
    page: (
      <>
        <div class="page-head">
          <h1>Mailbox</h1>
          <a class="button second" href="/mailbox">
            <Icon name="refresh-cw" />
            Refresh
          </a>
          <p class="lead">This local service sends no email. Everything that it would send is here, newest first.</p>
        </div>
        {mails.length === 0 ? <NoMails /> : <Mails mails={mails} />}
      </>
    ),
  }))

const NoMails = () => (
  <section class="card empty" aria-label="Emails">
    <Icon name="mail" />
    <p>No email yet. Sign up, or reset a password, and refresh this page.</p>
  </section>
)

const Mails = ({ mails }: { readonly mails: readonly Mail[] }) => (
  <section class="card" aria-label="Emails">
    <ol class="entries">
      {mails.map(({ id, subject, to, created_at }) => (
        <li key={id} data-mail={id}>
          <p>
            <a class="link" href={`/mailbox/${id}`}>
              {subject}
            </a>
          </p>
          <p class="muted">
            To {to} · <DateTime at={created_at} />
          </p>
        </li>
      ))}
    </ol>
  </section>
)

export const show: PageHandler = (visit) =>
  withMails(visit, (mails) => {
    const mail = mails.find(({ id }) => id === visit.params.id)
    if (!mail) return problemPage('not_found')
    return {
      name: 'mailbox-mail',
      title: mail.subject,
      page: (
        <>
          <h1>{mail.subject}</h1>
          <article class="card" data-mail={mail.id} aria-label="Email">
            <p class="muted">
              To {mail.to} · <DateTime at={mail.created_at} />
            </p>
            <Text text={mail.text} />
          </article>
          <p>
            <a class="link" href="/mailbox">
              All emails
            </a>
          </p>
        </>
      ),
    }
  })

/** The service has no mailbox unless it is for development, and then for visitors on this machine only. */
async function withMails(visit: Visit, createPage: (mails: readonly Mail[]) => Document): Promise<Document> {
  if (!isLoopback(visit.visitor.ip)) return problemPage('not_found')
  const { data } = await visit.anonymousApi.GET('/api/v1/mailbox')
  return data?.mails ? createPage(data.mails) : problemPage('not_found')
}

/** The paragraphs of a text, with its addresses as links. */
const Text = ({ text }: { readonly text: string }) => (
  <>
    {text.split('\n\n').map((paragraph) => (
      <p key={paragraph}>
        {paragraph.split('\n').map((line, index) => (
          <>
            {index === 0 ? null : <br />}
            {/^https?:\/\/\S+$/.test(line) ? (
              <a class="link" href={line}>
                {line}
              </a>
            ) : (
              line
            )}
          </>
        ))}
      </p>
    ))}
  </>
)
