import { defineRequirements, defineScenarios } from './define-scenarios.js';

// Half of them in `npm test`: with scripted hints, which come in the same fake time, all are tested.
defineScenarios('poll', 2);
defineRequirements('poll', 2);
