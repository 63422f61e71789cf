-- Writes down what migrate has made on the broker; under the environment row's lock. $1 record.
update matins.environment set topology = $1;
