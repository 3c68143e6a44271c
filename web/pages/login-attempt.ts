/** The sign-in of a plugin that waits for approval. */
const prefix = '/login?attempt='
const attemptId = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

export const isAttemptId = (text: string): boolean => attemptId.test(text)

/** The page that shows a login attempt: the question while it is pending, and the outcome afterwards. */
export const approvalPath = (attempt: string): string => prefix + attempt

export const isApprovalPath = (path: string): boolean => path.startsWith(prefix)
