/** A page below Help: its topics, and links to them. */
import type { ComponentChildren } from 'preact'

export interface HelpTopic {
  readonly id: string
  readonly title: string
  readonly content: ComponentChildren
}

interface HelpPageProps {
  readonly title: string
  readonly lead: string
  readonly topics: readonly HelpTopic[]
}

export const HelpPage = ({ title, lead, topics }: HelpPageProps) => (
  <>
    <div class="page-head">
      <h1>{title}</h1>
      <p class="lead">{lead}</p>
    </div>
    <div class="help">
      <nav class="card contents" aria-label="On this page">
        {topics.map(({ id, title: text }) => (
          <a key={id} class="link" href={`#${id}`}>
            {text}
          </a>
        ))}
        <a class="link muted" href="/help">
          All help
        </a>
      </nav>
      <div class="stack">
        {topics.map(({ id, title: text, content }) => (
          <section class="card" key={id} id={id} aria-labelledby={`${id}-title`}>
            <h2 id={`${id}-title`}>{text}</h2>
            {content}
          </section>
        ))}
      </div>
    </div>
  </>
)
