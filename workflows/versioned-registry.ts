/**
 * The workflows that a versioned worker runs: the entry of their bundle. A versioning behavior cannot stand with the
 * workflows themselves, since Temporal refuses the task of an unversioned worker that has one.
 */
import { setWorkflowOptions } from '@temporalio/workflow'
import { relaySession, subscription, warmInstances } from './registry.ts'

// A session lives for a day at most, so it ends on the version that it started on.
setWorkflowOptions({ versioningBehavior: 'PINNED' }, relaySession)

// These live for months, so they move to the current version. A change of their commands needs a patch.
setWorkflowOptions({ versioningBehavior: 'AUTO_UPGRADE' }, subscription)
setWorkflowOptions({ versioningBehavior: 'AUTO_UPGRADE' }, warmInstances)

export { relaySession, subscription, warmInstances }
