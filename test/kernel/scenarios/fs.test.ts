import { describe } from 'vitest';

import { defineRequirements, defineScenarios } from '../../watch/scenarios/define-scenarios.js';

describe.runIf(process.platform === 'linux')('hints from fs', () => {
  defineScenarios('fs');
  defineRequirements('fs');
});
