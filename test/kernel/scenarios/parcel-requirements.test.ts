/** In a file of its own, since it takes as long as the scenarios. What differs between targets is tested with `fs`. */
import { describe } from 'vitest';

import { defineRequirements } from '../../watch/scenarios/define-scenarios.js';

describe.runIf(process.platform === 'linux')('hints from parcel', () => defineRequirements('parcel', 6));
