/** The same examples in every run, so that the score of the mutation check does not depend on chance. */
import fc from 'fast-check'

fc.configureGlobal({ seed: 20_261_123 })
