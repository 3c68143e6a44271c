/** The messages at the top of a page. Their codes are stable, their texts may be reworded. */

/** Why a request was refused or what failed. */
export interface Problem {
  /** The API's error code, or one of the site's own. Rendered as `data-problem`. */
  readonly code: string
  readonly text: string
  /** The form field that it is about. */
  readonly field?: string
}

/** What was done. */
export interface Notice {
  /** Rendered as `data-notice`. */
  readonly code: string
  readonly text: string
  /** Whether it needs attention, such as a failed payment. */
  readonly isWarning?: boolean
}

/** Screen readers announce it when the page opens. Fields with an error refer to it by its id. */
export const ProblemMessage = ({ problem }: { readonly problem?: Problem | undefined }) =>
  problem ? (
    <p class="problem" role="alert" id="problem" data-problem={problem.code}>
      {problem.text}
    </p>
  ) : null

export const NoticeMessage = ({ notice }: { readonly notice?: Notice | undefined }) =>
  notice ? (
    <p class={notice.isWarning ? 'warning' : 'notice'} role="status" data-notice={notice.code}>
      {notice.text}
    </p>
  ) : null
