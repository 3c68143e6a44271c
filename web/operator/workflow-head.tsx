/** The head of a section about a workflow: its title, its id, and the link to the Temporal UI. */
import { Identifier } from './identifier.tsx'

interface WorkflowHeadProps {
  /** Id of the heading, for the label of the section. */
  readonly id: string
  readonly title: string
  readonly workflowId: string
  readonly temporalUiUrl: string
}

export const WorkflowHead = ({ id, title, workflowId, temporalUiUrl }: WorkflowHeadProps) => (
  <>
    <div class="row apart">
      <h2 id={id}>{title}</h2>
      <a class="link" href={temporalUiUrl} rel="noreferrer">
        Open in Temporal
      </a>
    </div>
    <p>
      <Identifier value={workflowId} />
    </p>
  </>
)
