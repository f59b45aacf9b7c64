import { describe } from 'vitest';

import { defineRequirements, defineScenarios } from './define-scenarios.js';

describe.runIf(process.platform === 'linux')('hints from fs', () => {
  defineScenarios('fs');
  defineRequirements('fs');
});
