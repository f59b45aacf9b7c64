import { defineRequirements, defineScenarios } from './define-scenarios.js';

defineScenarios('poll');
defineRequirements('poll');
