import { describe } from 'vitest';

import { defineScenarios } from '../../watch/scenarios/define-scenarios.js';

describe.runIf(process.platform === 'linux')('hints from parcel', () => defineScenarios('parcel', 4));
