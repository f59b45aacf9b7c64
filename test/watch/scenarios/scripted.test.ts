import { defineRequirements, defineScenarios } from './define-scenarios.js';

defineScenarios('scripted');
defineRequirements('scripted');
